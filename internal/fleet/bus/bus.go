// Package bus carries messages and journals between the processes of a fleet, over NATS:
// a server that is embedded in the coordinator, or a cluster of the user's. It is the one room
// that knows NATS.
//
// Questions and short words go over core NATS, where a lost one is asked again. Journals go
// over a JetStream stream alone: core NATS drops what a slow reader does not take.
package bus

import "errors"

// ErrNone says that this program was built without a bus.
var ErrNone = errors.New("this pitot was built without fleets (build tag nofleet)")

// ErrNobody says that nobody answers on a subject, as for the moment in which who does connects again.
var ErrNobody = errors.New("nobody answers")

// ErrRefused says that a server is there and does not let in who connects, or is not trusted:
// there is no use in asking again.
var ErrRefused = errors.New("refused")

// Access is where a server is, and what is shown to it. What is secret of it is read from files,
// and stands in no message and no error.
type Access struct {
	URL   string // nats://HOST:PORT, tls://HOST:PORT, or several with commas; HOST:PORT where a server is to listen
	Token string
	Nkey  string // file of an nkey's seed
	CA    string // file of the certificates to trust, PEM
	Cert  string // file of a certificate, PEM
	Key   string // and of its key, "" for the same file
}
