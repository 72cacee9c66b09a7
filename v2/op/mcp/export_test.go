package mcp

import "maps"

// WithoutTool is a copy of the reasons for operations without a tool.
func WithoutTool() map[string]string { return maps.Clone(withoutTool) }
