// Package bus carries messages and journals between the processes of a fleet, over NATS:
// a server that is embedded in the coordinator. It is the one room that knows NATS.
//
// Questions and short words go over core NATS, where a lost one is asked again. Journals go
// over a JetStream stream alone: core NATS drops what a slow reader does not take.
package bus

import "errors"

// ErrNone says that this program was built without a bus.
var ErrNone = errors.New("this pitot was built without fleets (build tag nofleet)")
