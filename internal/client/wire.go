// Package client speaks to servers: sockets whose reads carry the kernel's
// receive stamps, an HTTP/1.1 codec, and answers as they arrive.
//
// All parsers are push-style and do no I/O: [Exchange.Feed] takes whatever
// bytes a read gave and the time they arrived, so that plain sockets, TLS,
// scripted connections and fuzzers share one path.
package client
