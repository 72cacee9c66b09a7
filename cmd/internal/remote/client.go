package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"partnerapi/cmd/internal/database"
	"partnerapi/cmd/internal/output"
	"partnerapi/domain"
)

// clientWithin is how long a service may take to say which clients have a name, and
// clientMax bounds its answer, in bytes.
const clientWithin, clientMax = 30 * time.Second, 16 << 20

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
	found, err := clientsWith(ctx, base, key, text)
	if err != nil {
		return "", err
	}
	names, ids := make([]string, len(found)), []string{}
	for i, c := range found {
		names[i] = c.Name
		if domain.SortKey(c.Name) == domain.SortKey(text) {
			ids = append(ids, c.ID)
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

// listedClient is a client in a list of v2.
type listedClient struct{ ID, Name string }

// clientsWith are clients that a key reaches at a service, whose names contain a text:
// up to 500.
func clientsWith(ctx context.Context, base, key, text string) ([]listedClient, error) {
	query := url.Values{"q": {text}, "limit": {"500"}}
	client := newHTTPClient(http.DefaultTransport.(*http.Transport).Clone(), clientWithin)
	defer client.CloseIdleConnections()
	body, err := readWithKey(ctx, client, key, strings.TrimSuffix(base, "/")+"/v2/clients?"+query.Encode(), clientMax)
	if err != nil {
		return nil, err
	}
	var page struct{ Data []listedClient }
	if err := json.Unmarshal(body, &page); err != nil {
		return nil, fmt.Errorf("%s answered with no list of clients: %w", base, err)
	}
	return page.Data, nil
}
