package client

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"time"

	"github.com/go-json-experiment/json"

	"partnerapi/v2/op"
)

// Call calls an operation, with retries as Client.Do.
func Call[In, Out any](ctx context.Context, c *Client, o *op.Op[In, Out], in *In) (*Out, error) {
	out := new(Out)
	if err := c.call(ctx, o, in, "" /* cursor */, out); err != nil {
		return nil, err
	}
	return out, nil
}

// call calls an operation. in and out are pointers to the input and the output. A cursor that is not empty replaces the
// cursor of the input. An out of type *op.NoContent is not set.
func (c *Client) call(ctx context.Context, o op.Declaration, in any, cursor string, out any) error {
	target, err := op.Target(o, in)
	if err != nil {
		return err
	}
	if cursor != "" {
		u, err := url.Parse(target)
		if err != nil {
			return err
		}
		query := u.Query()
		query.Set("cursor", cursor)
		u.RawQuery = query.Encode()
		target = u.String()
	}
	body, err := op.Body(o, in)
	if err != nil {
		return fmt.Errorf("operation %s: %w", o.Meta().ID, err)
	}
	a, err := c.Do(ctx, Request{Method: o.Meta().Method, Path: "/v2" + target, Body: body})
	if _, noContent := out.(*op.NoContent); err != nil || noContent {
		return err
	}
	if err := json.Unmarshal(a.Body, out); err != nil {
		return fmt.Errorf("%s %s/v2%s returned an unexpected response; check the URL of the service: %w",
			o.Meta().Method, c.base, target, err)
	}
	return nil
}

// Pages yields the pages of a list, from the input's cursor on. An error is yielded last, with a nil page.
func Pages[In, Item any](
	ctx context.Context, c *Client, o *op.Op[In, op.Page[Item]], in *In,
) iter.Seq2[*op.Page[Item], error] {
	return eachPage(ctx, c, o, in, func(p *op.Page[Item]) (string, error) {
		if p.Page.NextCursor == nil {
			return "", nil
		}
		return *p.Page.NextCursor, nil
	})
}

// Items yields the items of all pages, from the input's cursor on. An error is yielded last, with a zero item.
func Items[In, Item any](
	ctx context.Context, c *Client, o *op.Op[In, op.Page[Item]], in *In,
) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for page, err := range Pages(ctx, c, o, in) {
			if err != nil {
				var zero Item
				yield(zero, err)
				return
			}
			for _, item := range page.Data {
				if !yield(item, nil) {
					return
				}
			}
		}
	}
}

// Feed yields the pages of a feed, from the input's cursor on. At the end of the feed it stops if every is 0, and
// otherwise polls each time after the duration every; a feed that the input does not follow stops there anyway. An error
// is yielded last, with a nil page. To continue later, start from the NextCursor of the last page.
func Feed[In, Item any](
	ctx context.Context, c *Client, o *op.Op[In, op.FeedPage[Item]], in *In, every time.Duration,
) iter.Seq2[*op.FeedPage[Item], error] {
	return eachPage(ctx, c, o, in, func(p *op.FeedPage[Item]) (string, error) {
		switch {
		case p.Page.NextCursor == "" && p.Page.AsOf != nil: // the end of a feed that is not followed
			return "", nil
		case p.Page.NextCursor == "":
			return "", errors.New("the response is not a page of a feed, because it has no cursor")
		case p.Page.HasMore:
			return p.Page.NextCursor, nil
		case every == 0:
			return "", nil
		}
		return p.Page.NextCursor, c.config.Wait(ctx, every)
	})
}

// eachPage yields the pages of a list or a feed. next returns the cursor of the page after a page, empty if there is
// none. An error is yielded last, with a nil page.
func eachPage[In, Page any](
	ctx context.Context, c *Client, o *op.Op[In, Page], in *In, next func(*Page) (string, error),
) iter.Seq2[*Page, error] {
	return func(yield func(*Page, error) bool) {
		cursor := ""
		for {
			page := new(Page)
			if err := c.call(ctx, o, in, cursor, page); err != nil {
				yield(nil, err)
				return
			}
			if !yield(page, nil) {
				return
			}
			var err error
			if cursor, err = next(page); err != nil {
				yield(nil, err)
			}
			if cursor == "" || err != nil {
				return
			}
		}
	}
}
