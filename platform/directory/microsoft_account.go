package directory

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"partnerapi/domain"
)

// microsoftAccount is a user in Graph's format.
type microsoftAccount struct {
	ID                string               `json:"id"`
	Removed           *json.RawMessage     `json:"@removed"`
	DisplayName       jsonProperty[string] `json:"displayName"`
	GivenName         jsonProperty[string] `json:"givenName"`
	Surname           jsonProperty[string] `json:"surname"`
	Mail              jsonProperty[string] `json:"mail"`
	Department        jsonProperty[string] `json:"department"`
	JobTitle          jsonProperty[string] `json:"jobTitle"`
	AccountEnabled    jsonProperty[bool]   `json:"accountEnabled"`
	UserType          jsonProperty[string] `json:"userType"`
	PreferredLanguage jsonProperty[string] `json:"preferredLanguage"`
}

// account converts the account. In a whole one, Graph omits properties that were never set; they are empty.
func (a microsoftAccount) account(group string, whole bool) domain.DirectoryAccount {
	if a.Removed != nil {
		return domain.DirectoryAccount{ObjectID: a.ID, Removed: true}
	}
	text := func(p jsonProperty[string]) domain.Optional[string] {
		return domain.Optional[string]{Given: p.Given || whole, Value: strings.TrimSpace(p.Value)}
	}
	d := domain.DirectoryAccount{
		ObjectID: a.ID, Enabled: a.AccountEnabled.Optional,
		Guest: domain.Optional[bool]{Given: a.UserType.Given, Value: strings.EqualFold(a.UserType.Value, "Guest")},
		Email: text(a.Mail), First: text(a.GivenName), Last: text(a.Surname),
		Department: text(a.Department), JobTitle: text(a.JobTitle), Group: domain.Give(group),
	}
	if language := text(a.PreferredLanguage); language.Given {
		d.Language = domain.Give(languageOf(language.Value))
	}
	if d.First.Given && d.Last.Given && d.First.Value+d.Last.Value == "" {
		first, last := splitName(a.DisplayName.Value)
		d.First, d.Last = domain.Give(first), domain.Give(last)
	}
	return d
}

// splitName splits a name at its last space.
func splitName(name string) (first, last string) {
	name = strings.Join(strings.Fields(name), " ")
	i := strings.LastIndexByte(name, ' ')
	if i < 0 {
		return name, ""
	}
	return name[:i], name[i+1:]
}

const (
	// batchSize is how many requests Graph takes in a batch.
	batchSize = 20
	// batchesAtOnce is how many batches are in progress at a time.
	batchesAtOnce = 4
)

// managers reads the addresses of the managers of accounts that are users.
func (m *microsoft) managers(ctx context.Context, accounts []domain.DirectoryAccount) error {
	var wanted []*domain.DirectoryAccount
	for i, a := range accounts {
		if !a.Removed && !a.Guest.Value {
			wanted = append(wanted, &accounts[i])
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(batchesAtOnce)
	for batch := range slices.Chunk(wanted, batchSize) {
		group.Go(domain.Carry(func() error { return m.readManagers(ctx, batch) }))
	}
	return domain.Raise(group.Wait())
}

// batchAnswer is Graph's response to one request of a batch.
type batchAnswer struct {
	ID      string            `json:"id"`
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"body"`
}

// readManagers reads the managers of a batch of accounts. It repeats requests of the batch that were throttled or
// failed.
func (m *microsoft) readManagers(ctx context.Context, accounts []*domain.DirectoryAccount) error {
	return m.sendWithRetries(ctx, func(ctx context.Context) error {
		answers, err := m.sendBatch(ctx, accounts)
		if err != nil {
			return err
		}
		var again error
		left := slices.Clone(accounts)
		for _, a := range answers {
			i, err := strconv.Atoi(a.ID)
			if err != nil || i < 0 || i >= len(accounts) {
				continue // it is sent again
			}
			manager, err := m.manager(a)
			if err != nil {
				if again, err = laterRetry(again, err); err != nil {
					return err
				}
				continue
			}
			accounts[i].ManagerEmail = domain.Give(manager)
			left[i] = nil
		}
		accounts = slices.DeleteFunc(left, func(a *domain.DirectoryAccount) bool { return a == nil })
		if len(accounts) > 0 && again == nil {
			again = m.malformed("does not answer all requests of a batch")
		}
		return again
	})
}

// laterRetry returns the temporary failure with the longer wait, or err as permanent if it is not temporary.
func laterRetry(before, err error) (again, permanent error) {
	next, ok := errors.AsType[*retryable](err)
	if !ok {
		return nil, err
	}
	first, ok := errors.AsType[*retryable](before)
	if ok && cmp.Or(cmp.Compare(first.kind, next.kind), cmp.Compare(first.after, next.after)) >= 0 {
		return first, nil
	}
	return next, nil
}

// sendBatch requests the managers of accounts; a request's id is the account's index.
func (m *microsoft) sendBatch(ctx context.Context, accounts []*domain.DirectoryAccount) ([]batchAnswer, error) {
	type request struct {
		ID     string `json:"id"`
		Method string `json:"method"`
		URL    string `json:"url"`
	}
	requests := make([]request, len(accounts))
	for i, a := range accounts {
		path := "/users/" + url.PathEscape(a.ObjectID) + "/manager?$select=id,mail"
		requests[i] = request{strconv.Itoa(i), http.MethodGet, path}
	}

	body, err := json.Marshal(map[string]any{"requests": requests})
	if err != nil {
		return nil, fmt.Errorf("ask for managers: %w", err)
	}
	var answer struct {
		Responses []batchAnswer `json:"responses"`
	}
	header := http.Header{"Content-Type": {"application/json"}}
	err = m.call(ctx, http.MethodPost, m.base+"/$batch", header, body, func(body []byte) error {
		answer.Responses = nil
		if err := json.Unmarshal(body, &answer); err != nil || answer.Responses == nil {
			return m.malformed("answers with a batch that can't be read")
		}
		return nil
	})
	return answer.Responses, err
}

// manager returns the address in a response; empty if there is no manager.
func (m *microsoft) manager(a batchAnswer) (string, error) {
	switch {
	case a.Status == http.StatusNotFound:
		return "", nil
	case a.Status == http.StatusTooManyRequests || a.Status == http.StatusServiceUnavailable:
		after := time.Duration(-1)
		for name, value := range a.Headers {
			if strings.EqualFold(name, "Retry-After") {
				after = domain.RetryAfter(value, m.clock.Now())
			}
		}
		return "", m.throttled(after)
	case a.Status == http.StatusUnauthorized, a.Status >= 500, a.Status == http.StatusRequestTimeout:
		return "", m.failed("fails with the status %d for a manager", a.Status)
	case a.Status/100 != 2:
		return "", m.refused(answer{status: a.Status, body: a.Body})
	}
	var manager struct {
		Mail string `json:"mail"`
	}
	if err := json.NewDecoder(bytes.NewReader(a.Body)).Decode(&manager); err != nil {
		return "", m.malformed("answers with a manager that can't be read")
	}
	return strings.TrimSpace(manager.Mail), nil
}
