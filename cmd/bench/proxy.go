package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// nginxConfig makes an nginx that does nothing but hand requests on, over
// connections that it keeps.
const nginxConfig = `
daemon off; worker_processes 1; pid %[1]s/nginx.pid; error_log %[1]s/error.log;
events { worker_connections 256; }
http {
	access_log off; keepalive_requests 1000000;
	client_body_temp_path %[1]s; proxy_temp_path %[1]s; fastcgi_temp_path %[1]s; uwsgi_temp_path %[1]s; scgi_temp_path %[1]s;
	upstream service { server %[3]s; keepalive 16; keepalive_requests 1000000; }
	server {
		listen %[2]s;
		location / { proxy_pass http://service; proxy_http_version 1.1; proxy_set_header Connection ""; }
	}
}
`

// proxied starts an nginx in front of a server, where it is installed, and
// returns its address and what ends it; an empty address where it is not.
func proxied(server string) (address string, stop func() error, err error) {
	program, err := exec.LookPath("nginx")
	if err != nil {
		if program = "/usr/sbin/nginx"; !executable(program) {
			return "", func() error { return nil }, nil
		}
	}
	dir, err := os.MkdirTemp("", "partnerapi-bench-nginx")
	if err != nil {
		return "", nil, err
	}
	address, err = freeAddress()
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	config := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(config, fmt.Appendf(nil, nginxConfig, dir, address, server), 0o600); err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}
	command := exec.Command(program, "-p", dir, "-c", config, "-e", filepath.Join(dir, "error.log"))
	if err := command.Start(); err != nil {
		return "", nil, errors.Join(fmt.Errorf("start nginx: %w", err), os.RemoveAll(dir))
	}
	stop = func() error {
		_ = command.Process.Signal(os.Interrupt)
		_ = command.Wait() // it says how it was ended
		return os.RemoveAll(dir)
	}
	for range 200 {
		if c, err := net.Dial("tcp", address); err == nil {
			return address, stop, c.Close()
		}
		time.Sleep(10 * time.Millisecond)
	}
	return "", nil, errors.Join(errors.New("nginx does not listen"), stop())
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&0o111 != 0
}

// freeAddress is an address of loopback that nobody listens on.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
