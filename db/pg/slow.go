package pg

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// slowEvery bounds how often statements of one name are logged: on a slow server all are slow.
const slowEvery = 10 * time.Second

// WithSlowLog logs statements that take a duration or longer, with the reading of their
// rows: by name, without values.
func WithSlowLog(log *slog.Logger, after time.Duration) Option {
	return func(o *options) { o.slow = &slowLog{log: log, after: after, lines: map[string]slowLine{}} }
}

// slowLog is a tracer that logs statements that are slow, and hands all on to another
// tracer, if there is one. It is safe for concurrent use.
type slowLog struct {
	log   *slog.Logger
	after time.Duration
	next  pgx.QueryTracer

	mu    sync.Mutex
	lines map[string]slowLine
}

// slowLine is when the statements of a name were last logged, and how many more there
// were since.
type slowLine struct {
	at   time.Time
	more int
}

type begunKey struct{}

// begun is a statement in progress.
type begun struct {
	at   time.Time
	name string
}

// TraceQueryStart notes when a statement begins.
func (s *slowLog) TraceQueryStart(ctx context.Context, c *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	ctx = context.WithValue(ctx, begunKey{}, begun{time.Now(), cmp.Or(StatementName(ctx), nameIn(data.SQL))})
	if s.next != nil {
		ctx = s.next.TraceQueryStart(ctx, c, data)
	}
	return ctx
}

// TraceQueryEnd logs a statement that was slow.
func (s *slowLog) TraceQueryEnd(ctx context.Context, c *pgx.Conn, data pgx.TraceQueryEndData) {
	if s.next != nil {
		s.next.TraceQueryEnd(ctx, c, data)
	}
	s.end(ctx, data.Err)
}

// TraceCopyFromStart notes when rows begin to be copied.
func (s *slowLog) TraceCopyFromStart(
	ctx context.Context, _ *pgx.Conn, data pgx.TraceCopyFromStartData,
) context.Context {
	name := cmp.Or(StatementName(ctx), "copy into "+strings.Join(data.TableName, "."))
	return context.WithValue(ctx, begunKey{}, begun{time.Now(), name})
}

// TraceCopyFromEnd logs copying that was slow.
func (s *slowLog) TraceCopyFromEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceCopyFromEndData) {
	s.end(ctx, data.Err)
}

func (s *slowLog) end(ctx context.Context, err error) {
	one, _ := ctx.Value(begunKey{}).(begun)
	now := time.Now()
	took := now.Sub(one.at)
	if one.at.IsZero() || took < s.after {
		return
	}
	more, logged := s.due(one.name, now)
	if !logged {
		return
	}
	s.log.LogAttrs(ctx, slog.LevelWarn, "a statement was slow", slog.String("statement", one.name),
		slog.Duration("took", took), slog.Bool("failed", err != nil), slog.Int("more", more))
}

// due says whether a line of a name is due, and how many were left out since the last.
func (s *slowLog) due(name string, now time.Time) (more int, logged bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.lines[name]
	if !last.at.IsZero() && now.Sub(last.at) < slowEvery {
		last.more++
		s.lines[name] = last
		return 0, false
	}
	s.lines[name] = slowLine{at: now}
	return last.more, true
}

// nameIn is the name of a statement that no Query made: its first word. The rest may
// hold values.
func nameIn(sql string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(sql), " ")
	return strings.ToLower(word[:min(len(word), 20)])
}
