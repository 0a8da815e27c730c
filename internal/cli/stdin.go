package cli

import (
	"fmt"
	"io"
	"os"
	"slices"

	"pitot/internal/config"
	"pitot/internal/say"
)

// mostStdin is the most bytes that are kept of standard input.
const mostStdin = 16 << 30

// fromStdin keeps a workload that comes on standard input, as "-", in a file: it is read more
// than once. The arguments name that then; remove it when done.
func fromStdin(verb string, args []string, stdin io.Reader) (_ []string, remove func(), err error) {
	at, prefix := -1, ""
	for i, a := range args {
		switch {
		case verb == "workload" && i > 0 && a == "-" && args[i-1] != "-o" && args[i-1] != "--out",
			i > 0 && args[i-1] == "--workload" && a == "-":
			at = i
		case a == "--workload=-":
			at, prefix = i, "--workload="
		}
	}
	if at < 0 {
		return args, func() {}, nil
	}
	f, err := os.CreateTemp("", config.StdinPrefix)
	if err != nil {
		return nil, nil, say.Errorf("keep standard input: %v", err).WithHint("set TMPDIR to a directory that can be written")
	}
	remove = func() { _ = os.Remove(f.Name()) }
	n, err := io.Copy(f, io.LimitReader(stdin, mostStdin+1))
	if err == nil && n > mostStdin {
		err = fmt.Errorf("it is over %d GiB", mostStdin>>30)
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		remove()
		return nil, nil, say.Errorf("keep standard input: %v", err).WithHint("free space where temporary files are, or set TMPDIR")
	}
	args = slices.Clone(args)
	args[at] = prefix + f.Name()
	return args, remove, nil
}
