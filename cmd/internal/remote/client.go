package remote

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"partnerapi/client"
	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/output"
	"partnerapi/domain"
	v2 "partnerapi/v2"
)

// ClientAt is the id of a client that a key reaches at a service, as v2 shows it: of one
// named by id, UUID or name. What looks like an id, or is a number of v1, is not asked
// for, and returned as it is.
func ClientAt(ctx context.Context, base, key, text string) (string, error) {
	if _, err := strconv.ParseUint(text, 10, 63); err == nil || strings.HasPrefix(text, "cli_") {
		return text, nil
	}
	if id, err := database.ClientRead(text); err == nil {
		return id.String(), nil
	}
	c, err := client.New(client.Config{URL: base, Key: key})
	if err != nil {
		return "", err
	}
	defer c.Close()
	in := &v2.ListClients{}
	in.Query.Q, in.Query.Limit = text, 500
	var names, ids []string
	for found, err := range client.Items(ctx, c, v2.New(nil, nil).ListClients, in) {
		if err != nil {
			return "", err
		}
		names = append(names, found.Name)
		if domain.SortKey(found.Name) == domain.SortKey(text) {
			ids = append(ids, found.ID.String())
		}
	}
	switch len(ids) {
	case 0:
		return "", fmt.Errorf("the key reaches no client %q: name one by its id, as GET /v2/clients shows it, or its name%s",
			text, output.DidYouMean(text, names))
	case 1:
		return ids[0], nil
	}
	return "", fmt.Errorf("%d clients are called %q: name one by its id, %s", len(ids), text, strings.Join(ids, " or "))
}
