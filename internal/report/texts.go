package report

import "fmt"

// texts is a list of texts that grows.
type texts []string

func (t *texts) add(more ...string) { *t = append(*t, more...) }

func (t *texts) addf(format string, args ...any) { t.add(fmt.Sprintf(format, args...)) }
