module pitot/release

go 1.26.4

toolchain go1.26.8
