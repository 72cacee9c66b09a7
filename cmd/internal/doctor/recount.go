package doctor

import (
	"context"
	"encoding/json"
	"fmt"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/output"
	"partnerapi/db"
	"partnerapi/db/doctor"
)

// recountAll compares all stored counts with what they count, and corrects those that
// differ, in place of the checks.
func (c Command) recountAll(ctx context.Context, s cli.Env) error {
	return c.Flags.With(ctx, s, func(d *db.DB) error {
		wrong, err := doctor.Recount(ctx, d)
		if c.JSON {
			report := struct {
				Corrected []doctor.Miscount `json:"corrected"`
			}{append([]doctor.Miscount{}, wrong...)}
			if failed := json.NewEncoder(output.ForJSON(s.Out)).Encode(report); err == nil {
				err = failed
			}
			return err
		}
		database.PrintRecounts(s.Out, wrong)
		if err == nil {
			fmt.Fprintf(s.Out, "%s wrong and corrected; all others are right\n", output.Counted(len(wrong), "stored count was", "stored counts were"))
		}
		return err
	})
}
