package dbtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/ory/dockertest/v3"
	"github.com/ory/dockertest/v3/docker"

	"partnerapi/db/internal/lastout"
)

const (
	image, tag   = "postgres", "17-alpine"
	port         = "5432/tcp"
	passwordName = "POSTGRES_PASSWORD="
)

// dockerEngine returns the Docker engine; nil if none responds.
func dockerEngine(ctx context.Context) *dockertest.Pool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	pool, err := dockertest.NewPool("")
	if err != nil || pool.Client.PingWithContext(ctx) != nil {
		return nil
	}
	return pool
}

// inContainer reaches the container that the test processes share; dir holds
// their count.
func inContainer(ctx context.Context, pool *dockertest.Pool, dir string) (*server, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	var box *dockertest.Resource
	lease, err := lastout.Enter(ctx, dir, func() (err error) {
		if box, err = container(pool); err != nil {
			return err
		}
		pool.MaxWait = patience / 2
		return pool.Retry(func() error {
			conn, err := pgx.Connect(ctx, boxAddress(box))
			if err != nil {
				return err
			}
			return conn.Close(ctx)
		})
	})
	if err != nil {
		return nil, err
	}

	leave := func() error {
		return lease.Leave(func() error { return pool.Purge(box) })
	}
	s, err := connect(ctx, boxAddress(box), leave)
	if err != nil {
		return nil, errors.Join(err, leave())
	}
	return s, nil
}

// container finds the running container, or runs it.
func container(pool *dockertest.Pool) (*dockertest.Resource, error) {
	name := fmt.Sprintf("partnerapi-dbtest-%d", os.Getuid())
	if box, found := pool.ContainerByName("^/" + name + "$"); found {
		if box.Container.State.Running {
			return box, nil
		}
		if err := pool.Purge(box); err != nil {
			return nil, err
		}
	}
	cmd := []string{"postgres"}
	for _, key := range slices.Sorted(maps.Keys(fast)) {
		cmd = append(cmd, "-c", key+"="+fast[key])
	}
	bind := "127.0.0.1"
	if engineHost() != bind {
		bind = "" // a distant engine's loopback can't be reached
	}
	return pool.RunWithOptions(&dockertest.RunOptions{
		Name: name, Repository: image, Tag: tag, Cmd: cmd,
		Env:          []string{passwordName + rand.Text(), "POSTGRES_INITDB_ARGS=--locale=C --encoding=UTF8"},
		PortBindings: map[docker.Port][]docker.PortBinding{port: {{HostIP: bind}}},
	}, func(host *docker.HostConfig) { host.AutoRemove = true })
}

// boxAddress is the URL of the container's server. The password is the one that
// it was started with.
func boxAddress(box *dockertest.Resource) string {
	var password string
	for _, setting := range box.Container.Config.Env {
		if value, found := strings.CutPrefix(setting, passwordName); found {
			password = value
		}
	}
	u := url.URL{
		Scheme:   "postgres",
		User:     url.UserPassword("postgres", password),
		Host:     net.JoinHostPort(engineHost(), box.GetPort(port)),
		Path:     "/postgres",
		RawQuery: "sslmode=disable",
	}
	return u.String()
}

// engineHost is where the ports of the engine's containers are.
func engineHost() string {
	if u, err := url.Parse(os.Getenv("DOCKER_HOST")); err == nil && u.Scheme == "tcp" {
		return u.Hostname()
	}
	return "127.0.0.1"
}
