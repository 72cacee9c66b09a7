package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"partnerapi/domain"
)

type enableTemplatesCmd struct {
	databaseFlags
	Client     domain.ClientID `arg:"" help:"The client's id."`
	Categories []string        `arg:"" help:"The categories whose templates it may be sent, one after the other; or all."`
}

// Run sets which templates a client is sent where a send names none (decisions
// 7.5). A category that no template has is an error that lists those there are.
func (c enableTemplatesCmd) Run(ctx context.Context, s streams) (err error) {
	d, shut, err := c.open(ctx, s.err)
	if err != nil {
		return err
	}
	defer closing(shut, &err)
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
			return fmt.Errorf("no template is of category %q; there are %s", category, strings.Join(known, ", "))
		}
	}
	if err := d.EnableCategories(ctx, c.Client, chosen); err != nil {
		return err
	}
	if chosen == nil {
		chosen = known
	}
	fmt.Fprintf(s.out, "%s is sent templates of %s\n", c.Client, strings.Join(chosen, ", "))
	return nil
}
