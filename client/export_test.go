package client

import (
	"context"

	"partnerapi/v2/op"
)

// CallAny is Call without the types.
func CallAny(ctx context.Context, c *Client, o op.Declaration, in, out any) error {
	return c.call(ctx, o, in, "", out)
}
