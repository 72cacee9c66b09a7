// Command demonstration serves a demonstration and runs programs against it, one after
// the other. It stops and fails when a program fails:
//
//	demonstration PARTNERAPI COMMAND…
//
// PARTNERAPI is the service's binary, and each COMMAND is a command line, split at spaces.
// These environment variables are set for the programs:
//
//   - BASE: the service's URL
//   - KEY: an API key with access to all clients
//   - PARTNERAPI_DATA_DIR: the service's data directory
//   - TLS_CERT, TLS_KEY: the files of a certificate and its private key, for webhook
//     endpoints on 127.0.0.1; the service trusts the certificate
package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: demonstration PARTNERAPI COMMAND…")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(partnerapi string, commands []string) (err error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	dir, err := os.MkdirTemp("", "partnerapi-demonstration-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	if err := certify(cert, key); err != nil {
		return err
	}

	// What the environment says of another service, as its database, is not for this one.
	env := slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "PARTNERAPI_") })
	data := filepath.Join(dir, "data")
	serve := exec.Command(partnerapi, "serve", "--demo", "--release", "latest", "--listen", "127.0.0.1:0",
		"--data-dir", data, "--webhook-allow-private", "--webhook-ca", cert)
	said := &strings.Builder{}
	serve.Env, serve.Stderr = env, said
	out, err := serve.StdoutPipe()
	if err != nil {
		return err
	}
	if err := serve.Start(); err != nil {
		return err
	}
	defer func() {
		serve.Process.Signal(syscall.SIGTERM)
		serve.Wait()
		if err != nil {
			log := said.String()
			err = fmt.Errorf("%w\nthe service said:\n%s", err, log[max(0, len(log)-5000):])
		}
	}()

	greeting, err := greetingOf(out)
	if err != nil {
		return err
	}
	env = append(append(env, greeting...), "TLS_CERT="+cert, "TLS_KEY="+key, "PARTNERAPI_DATA_DIR="+data)
	for _, command := range commands {
		words := strings.Fields(command)
		program := exec.CommandContext(ctx, words[0], words[1:]...)
		program.Env, program.Stdout, program.Stderr = env, os.Stdout, os.Stderr
		program.Cancel = func() error { return program.Process.Signal(syscall.SIGTERM) }
		if err := program.Run(); err != nil {
			return fmt.Errorf("%s: %w", command, err)
		}
	}
	return nil
}

var (
	address = regexp.MustCompile(` serves v2 .* at (http:\S+)$`)
	allKey  = regexp.MustCompile(`^ {2}(\S+) +all clients; read, write$`)
)

// greetingOf reads the address and a key from what the service prints first.
func greetingOf(out io.Reader) (env []string, err error) {
	lines := bufio.NewScanner(out)
	base, key := "", ""
	for (base == "" || key == "") && lines.Scan() {
		if found := address.FindStringSubmatch(lines.Text()); found != nil && base == "" {
			base = found[1]
		}
		if found := allKey.FindStringSubmatch(lines.Text()); found != nil && key == "" {
			key = found[1]
		}
	}
	if base == "" || key == "" {
		return nil, errors.New("the service did not begin")
	}
	go io.Copy(io.Discard, out)
	return []string{"BASE=" + base, "KEY=" + key}, nil
}

// certify makes a certificate for 127.0.0.1 that is its own authority.
func certify(certFile, keyFile string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true, IsCA: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	plain, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), 0o600); err != nil {
		return err
	}
	return os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: plain}), 0o600)
}
