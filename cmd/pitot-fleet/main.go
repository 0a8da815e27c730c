// Command pitot-fleet is pitot with a NATS server in it, which --fleet listen:// starts.
package main

import (
	"context"
	"os"

	"pitot/internal/cli"
	"pitot/internal/workers/bus"
	"pitot/internal/workers/natsserver"
)

func main() {
	bus.EmbedServer(natsserver.Serve)
	os.Exit(cli.Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
