//go:build !linux

package wire

// Retransmits is not known on this platform.
func (c *Conn) Retransmits() int { return 0 }
