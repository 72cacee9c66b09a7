package pg

import (
	"cmp"
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/jackc/pgx/v5"
)

// slowEvery is the minimum interval between two lines for statements with the same name: on a slow server all are slow.
const slowEvery = 10 * time.Second

// WithSlowLog logs the names of statements, without values, that take at least the duration after, reading included.
func WithSlowLog(log *slog.Logger, after time.Duration) Option {
	return func(o *options) { o.slow = &slowLog{log: log, after: after, lines: map[string]slowLine{}} }
}

// slowLog is a tracer that logs slow statements. It is safe for concurrent use.
type slowLog struct {
	log   *slog.Logger
	after time.Duration

	mu    sync.Mutex
	lines map[string]slowLine
}

// slowLine is the time of the last line for a name, and the number of slow statements since that were not logged.
type slowLine struct {
	at   time.Time
	more int
}

type statementStartKey struct{}

// statementStart is the time at which a statement in progress began, and its name.
type statementStart struct {
	at   time.Time
	name string
}

// TraceQueryStart implements pgx.QueryTracer.
func (s *slowLog) TraceQueryStart(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, statementStartKey{}, statementStart{time.Now(), cmp.Or(StatementName(ctx), nameIn(data.SQL))})
}

// TraceQueryEnd implements pgx.QueryTracer.
func (s *slowLog) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceQueryEndData) {
	s.end(ctx, data.Err)
}

// TraceCopyFromStart implements pgx.CopyFromTracer.
func (s *slowLog) TraceCopyFromStart(
	ctx context.Context, _ *pgx.Conn, data pgx.TraceCopyFromStartData,
) context.Context {
	name := cmp.Or(StatementName(ctx), "copy into "+strings.Join(data.TableName, "."))
	return context.WithValue(ctx, statementStartKey{}, statementStart{time.Now(), name})
}

// TraceCopyFromEnd implements pgx.CopyFromTracer.
func (s *slowLog) TraceCopyFromEnd(ctx context.Context, _ *pgx.Conn, data pgx.TraceCopyFromEndData) {
	s.end(ctx, data.Err)
}

// end logs the statement of ctx if it was slow and a line for its name is due.
func (s *slowLog) end(ctx context.Context, err error) {
	start, _ := ctx.Value(statementStartKey{}).(statementStart)
	now := time.Now()
	took := now.Sub(start.at)
	if start.at.IsZero() || took < s.after {
		return
	}
	more, due := s.due(start.name, now)
	if !due {
		return
	}
	s.log.LogAttrs(ctx, slog.LevelWarn, "a statement was slow", slog.String("statement", start.name),
		slog.Duration("took", took), slog.Bool("failed", err != nil), slog.Int("more", more))
}

// due reports whether a line for a name is due, and counts the statement otherwise. more is the number of statements
// that were not logged since the last line.
func (s *slowLog) due(name string, now time.Time) (more int, due bool) {
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

// nameIn returns a name for a statement that is not of a Query: its first word. The rest may contain values.
func nameIn(sql string) string {
	word := strings.TrimSpace(sql)
	if end := strings.IndexFunc(word, func(r rune) bool { return !unicode.IsLetter(r) }); end >= 0 {
		word = word[:end]
	}
	return strings.ToLower(word)
}
