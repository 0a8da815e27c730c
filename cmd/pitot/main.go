// Command pitot measures how an LLM endpoint serves under load.
package main

import (
	"context"
	"os"

	"pitot/internal/cli"
)

func main() {
	os.Exit(cli.Run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}
