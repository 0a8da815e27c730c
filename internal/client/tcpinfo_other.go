//go:build !linux

package client

// Retransmits is not known on this platform.
func (c *Conn) Retransmits() int32 { return 0 }

func (c *Conn) sentAgain() int { return 0 }
