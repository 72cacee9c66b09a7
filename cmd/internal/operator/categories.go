package operator

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"partnerapi/cmd/internal/cli"
	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/output"
	"partnerapi/db"
)

type enableTemplatesCmd struct {
	database.Flags
	Client     string   `arg:"" help:"The client: its id, UUID or name."`
	Categories []string `arg:"" help:"The categories whose templates it may be sent, one after the other; or all."`
}

// Run sets which templates a client is sent where a send names none (decisions
// 7.5). A category that no template has is an error that lists those there are.
func (c enableTemplatesCmd) Run(ctx context.Context, s cli.Env) error {
	return c.WithClient(ctx, s, c.Client, func(d *db.DB, client db.ClientName) error {
		known, err := d.TemplateCategories(ctx)
		if err != nil {
			return err
		}
		chosen := slices.Compact(slices.Sorted(slices.Values(c.Categories)))
		if slices.Equal(chosen, []string{"all"}) {
			chosen = nil
		}
		for _, category := range chosen {
			if !slices.Contains(known, category) {
				return fmt.Errorf("no template is of category %q; there are %s%s", category, strings.Join(known, ", "),
					output.DidYouMean(category, known))
			}
		}

		err = database.Audited(ctx, d, database.OfClient("templates enable", client.ID, "categories"), func(ctx context.Context) error {
			return d.EnableCategories(ctx, client.ID, chosen)
		})
		if err != nil {
			return err
		}
		if chosen == nil {
			chosen = known
		}
		_, err = fmt.Fprintf(s.Out, "%s (%s) is sent templates of %s\n", client.Name, client.ID, strings.Join(chosen, ", "))
		return err
	})
}
