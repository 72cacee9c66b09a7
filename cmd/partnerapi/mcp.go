package main

import (
	"io/fs"

	"partnerapi/docs"
	"partnerapi/platform/site"
	"partnerapi/v2/api"
	"partnerapi/v2/op/ginop"
	"partnerapi/v2/op/mcp"
)

// mountMCP adds the MCP server, in the releases that have it. The secret is one that all replicas share.
func (s *service) mountMCP(address string, secret []byte) error {
	if s.config.Release < mcp.Since {
		return nil
	}
	document, err := documentV2(s.config.Release)
	if err != nil {
		return err
	}
	origins := mcp.Origins(address, s.config.Listen)
	for _, text := range s.config.MCPOrigins {
		origin, err := mcp.ParseOrigin(text)
		if err != nil {
			return err
		}
		origins = append(origins, origin)
	}
	server, err := mcp.New(mcp.Config{
		Operations: api.Operations, Release: s.config.Release, Document: document, Prefix: "/v2", Handler: s.engine,
		Secret: secret, ReadOnly: s.config.MCPReadOnly, Origins: origins,
		Count: s.edge.Count, CountMessage: s.edge.CountMessage, Parse: s.edge.Parse, Envelope: s.edge.Envelope, Version: builtVersion(), Log: s.log,
		GuideNames: guideOrder(), Guide: func(name string) ([]byte, error) {
			text, err := fs.ReadFile(docs.Guides(), name+".md")
			return site.Text(text, address, s.config.Demo, s.clock.Now()), err
		},
	})
	if err != nil {
		return err
	}
	s.edge.Protocol(s.engine, ginop.Protocol{Path: mcp.Path, Before: server.CheckOrigin, Serve: server.Serve, Fault: server.Fault})
	return nil
}
