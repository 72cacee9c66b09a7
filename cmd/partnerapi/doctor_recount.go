package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"

	"partnerapi/db"
	"partnerapi/db/doctor"
)

// recountAll compares all stored counts with what they count, and corrects those that
// differ, in place of the checks.
func (c doctorCmd) recountAll(ctx context.Context, s streams) (err error) {
	d, shut, err := c.databaseFlags.open(ctx, s.err)
	if err != nil {
		return err
	}
	defer closing(shut, &err)

	wrong, err := doctor.Recount(ctx, d)
	if c.JSON {
		report := struct {
			Corrected []doctor.Miscount `json:"corrected"`
		}{append([]doctor.Miscount{}, wrong...)}
		if failed := json.NewEncoder(jsonTo(s.out)).Encode(report); err == nil {
			err = failed
		}
		return err
	}
	printRecounts(s.out, wrong)
	if err == nil {
		fmt.Fprintf(s.out, "%s wrong and corrected; all others are right\n", counted(len(wrong), "stored count was", "stored counts were"))
	}
	return err
}

// printRecounts writes a line for each count that was wrong.
func printRecounts(to io.Writer, wrong []doctor.Miscount) {
	for _, m := range wrong {
		fmt.Fprintf(to, "recounted: %s %s was %s, is %s\n", m.Counter, m.Key, m.Stored, m.Counted)
	}
}

// recountDue recounts what an upgrade asked for. What fails is tried again after the
// next daily refresh, or by the next start.
func recountDue(ctx context.Context, d *db.DB, log *slog.Logger) {
	wrong, err := doctor.RecountDue(ctx, d)
	for _, m := range wrong {
		log.WarnContext(ctx, "a stored count was wrong and is corrected", "counter", m.Counter, "key", string(m.Key),
			"stored", m.Stored, "counted", m.Counted)
	}
	if err != nil && ctx.Err() == nil {
		log.WarnContext(ctx, "stored counts were not recounted; it will be tried again", "error", err)
	}
}
