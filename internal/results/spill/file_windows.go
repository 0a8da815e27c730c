package spill

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// deleteOnClose is FILE_FLAG_DELETE_ON_CLOSE of CreateFile.
const deleteOnClose = 0x04000000

// nameless makes a file in a directory that the system deletes when it is
// closed, also by a kill.
func nameless(dir string) (*os.File, error) {
	name := strings.Replace(temporary, "*", fmt.Sprint(rand.Uint64()), 1)
	return os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE|os.O_EXCL|deleteOnClose, 0o600)
}
