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
	// ManagerLinks are the changes of the account's link to its manager: the new manager, and the removed one.
	ManagerLinks []managerLink `json:"manager@delta"`
}

// managerLink is an entry of manager@delta. The id of the manager in it is not used: not every manager is in one.
type managerLink struct {
	Removed *json.RawMessage `json:"@removed"`
}

// account converts the account, with group as the user's group. A property that Graph did not send is not given: it has
// never been set, or has not changed.
func (a microsoftAccount) account(group string) domain.DirectoryAccount {
	if a.Removed != nil {
		return domain.DirectoryAccount{ObjectID: a.ID, Removed: true}
	}
	text := func(p jsonProperty[string]) domain.Optional[string] {
		return domain.Optional[string]{Given: p.Given, Value: strings.TrimSpace(p.Value)}
	}
	d := domain.DirectoryAccount{
		ObjectID: a.ID, Enabled: a.AccountEnabled.Optional,
		Guest: domain.Optional[bool]{Given: a.UserType.Given, Value: strings.EqualFold(a.UserType.Value, "Guest")},
		Email: text(a.Mail), First: text(a.GivenName), Last: text(a.Surname), Display: text(a.DisplayName),
		Department: text(a.Department), JobTitle: text(a.JobTitle), Group: domain.Give(group),
	}
	if language := text(a.PreferredLanguage); language.Given {
		d.Language = domain.Give(languageOf(language.Value))
	}
	if a.unmanaged() {
		d.Manager = domain.Give("")
	}
	return d
}

// unmanaged reports whether Graph says that the account's manager was removed, and no other one was set.
func (a microsoftAccount) unmanaged() bool {
	removed := func(l managerLink) bool { return l.Removed != nil }
	return len(a.ManagerLinks) > 0 && !slices.ContainsFunc(a.ManagerLinks, func(l managerLink) bool { return !removed(l) })
}

const (
	// batchSize is the maximum number of requests in a batch of Graph.
	batchSize = 20
	// batchesAtOnce is the maximum number of batches in progress at a time.
	batchesAtOnce = 4
)

// setManagers sets the manager of each account that is neither removed nor a guest. It asks for all of them, since a
// round neither names every manager nor any manager's email address. It sends up to batchesAtOnce batches at a time.
func (m *microsoft) setManagers(ctx context.Context, accounts []domain.DirectoryAccount) error {
	var users []*domain.DirectoryAccount
	for i, a := range accounts {
		if !a.Removed && !a.Guest.Value {
			users = append(users, &accounts[i])
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(batchesAtOnce)
	for batch := range slices.Chunk(users, batchSize) {
		group.Go(domain.PanicToError(func() error { return m.readManagers(ctx, batch) }))
	}
	return domain.Repanic(group.Wait())
}

// batchAnswer is Graph's response to one request of a batch.
type batchAnswer struct {
	ID      string            `json:"id"`
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers"`
	Body    json.RawMessage   `json:"body"`
}

// readManagers sets the managers of a batch of accounts. An account whose manager is not found keeps the ID that it
// has: the manager may be deleted, and be restored later, which is not a change of the account. It sends a request
// again, in a smaller batch, if it was throttled, failed or got no response. It returns the first permanent error.
func (m *microsoft) readManagers(ctx context.Context, accounts []*domain.DirectoryAccount) error {
	return m.sendWithRetries(ctx, func(ctx context.Context) error {
		answers, err := m.sendBatch(ctx, accounts)
		if err != nil {
			return err
		}
		var retryErr error
		remaining := slices.Clone(accounts)
		for _, a := range answers {
			i, err := strconv.Atoi(a.ID)
			if err != nil || i < 0 || i >= len(accounts) {
				continue // not an id of the batch
			}
			id, email, err := m.manager(a)
			if err != nil {
				if retryErr, err = mergeRetries(retryErr, err); err != nil {
					return err
				}
				continue
			}
			accounts[i].ManagerEmail = domain.Give(email)
			if id != "" && m.group == "" { // the accounts of a group's managers need not be read
				accounts[i].Manager = domain.Give(id)
			}
			remaining[i] = nil
		}
		accounts = slices.DeleteFunc(remaining, func(a *domain.DirectoryAccount) bool { return a == nil })
		if len(accounts) > 0 && retryErr == nil {
			retryErr = m.malformedError("did not respond to all requests of a batch")
		}
		return retryErr
	})
}

// mergeRetries returns, of two retryable errors of a batch, the one that decides how the batch is retried: throttled
// before malformed before failed or, if the kinds are equal, the longer wait. previous may be nil. If err is not
// retryable, it is returned as permanent.
func mergeRetries(previous, err error) (retryErr, permanent error) {
	next, ok := errors.AsType[*retryable](err)
	if !ok {
		return nil, err
	}
	first, ok := errors.AsType[*retryable](previous)
	if ok && cmp.Or(cmp.Compare(first.kind, next.kind), cmp.Compare(first.after, next.after)) >= 0 {
		return first, nil
	}
	return next, nil
}

// sendBatch requests the managers of accounts in one batch. The id of a request, and of its response, is the index of
// the account. The responses may be in any order, and some may be missing.
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
	type batch struct {
		Responses []batchAnswer `json:"responses"`
	}
	header := http.Header{"Content-Type": {"application/json"}}
	answer, err := call(ctx, m.session, m.base+"/$batch", header, body, "a batch", func(b batch) error {
		if b.Responses == nil {
			return m.malformedError("returned a batch that can't be read")
		}
		return nil
	})
	return answer.Responses, err
}

// manager returns the ID and the email address of the manager in a response. The ID is empty if there is no manager,
// and the address if there is none or the manager has none. The error is retryable if the request was throttled,
// unauthorized or failed, or the response is malformed, and otherwise that of requestError.
func (m *microsoft) manager(a batchAnswer) (id, email string, err error) {
	switch {
	case a.Status == http.StatusNotFound:
		return "", "", nil
	case a.Status == http.StatusTooManyRequests || a.Status == http.StatusServiceUnavailable:
		after := unknownWait
		for name, value := range a.Headers {
			if strings.EqualFold(name, "Retry-After") {
				after = domain.RetryAfter(value, m.clock.Now())
			}
		}
		return "", "", m.throttledError(after)
	case a.Status == http.StatusUnauthorized, a.Status >= 500, a.Status == http.StatusRequestTimeout:
		return "", "", m.failedError("failed with status %d for a manager", a.Status)
	case a.Status/100 != 2:
		return "", "", m.requestError(answer{status: a.Status, body: a.Body})
	}
	var manager struct {
		ID   string `json:"id"`
		Mail string `json:"mail"`
	}
	if err := json.NewDecoder(bytes.NewReader(a.Body)).Decode(&manager); err != nil {
		return "", "", m.malformedError("returned a manager that can't be read")
	}
	return manager.ID, strings.TrimSpace(manager.Mail), nil
}
