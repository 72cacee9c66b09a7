package config

import (
	"fmt"
	"net"
)

// Listen takes the port of an address that a flag gave.
func Listen(flag, address string) (net.Listener, error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on %s: %w (choose another with %s)", address, err, flag)
	}
	return listener, nil
}
