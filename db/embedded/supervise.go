package embedded

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"partnerapi/domain"
)

const (
	// watchEvery is the interval at which a supervised server is checked.
	watchEvery = time.Second
	// firstPause and lastPause bound the pause before a restart if the last start was less than lastPause ago. Each
	// pause is twice the one before.
	firstPause = time.Second
	lastPause  = time.Minute
)

// Supervise restarts the server on the same port whenever it has exited, with pauses that grow, until ctx ends. cfg is
// the configuration that Start got. No other method may be called during it. Other processes may supervise the same
// server.
func (s *Server) Supervise(ctx context.Context, cfg Config, log *slog.Logger) {
	config, err := pgconn.ParseConfig(s.url)
	if err != nil {
		log.ErrorContext(ctx, "PostgreSQL cannot be supervised", "error", err)
		return
	}
	cfg.Port = int(config.Port)
	cfg.Disposable = false // a restart must not delete data

	pause := firstPause
	started := time.Now()
	for domain.Pause(ctx, watchEvery) == nil {
		if _, alive, err := s.dir.postmaster(); err != nil || alive { // after an error it is not known to have exited
			continue
		}
		if time.Since(started) > lastPause {
			pause = firstPause
		} else if domain.Pause(ctx, pause) != nil {
			return
		}
		pause = min(2*pause, lastPause)

		log.WarnContext(ctx, "PostgreSQL has ended; restarting it", "port", strconv.Itoa(cfg.Port), "log", s.dir.logFile())
		if err := s.restart(ctx, cfg); err != nil {
			log.ErrorContext(ctx, "PostgreSQL did not start; the start will be retried", "error", err, "pause", pause)
		} else {
			log.InfoContext(ctx, "PostgreSQL was restarted", "process", s.pid)
		}
		started = time.Now()
	}
}

// restart calls Start, which starts or joins the server, and only then stops the old use: if that were the last use, it
// would stop the server.
func (s *Server) restart(ctx context.Context, cfg Config) error {
	next, err := Start(ctx, cfg)
	if err != nil {
		return err
	}
	old := *s
	*s = *next
	return old.Stop()
}
