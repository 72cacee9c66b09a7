package remote

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"partnerapi/v2/op"
	"partnerapi/v2/op/mcp"
)

// stdio is the connection to the agent: a JSON-RPC message in each line of in and out. A call is passed on with a
// number of the connection's own as its ID, and answered with the agent's, exactly as that was sent: the SDK's
// connection changes large numbers. A line that is not one message gets an error, and reading continues.
type stdio struct {
	in *bufio.Reader

	mu  sync.Mutex // guards out and what follows
	out io.Writer
	// calls are the agent's IDs of calls without a response, by our own; last is the latest of these.
	calls map[jsonrpc.ID]json.RawMessage
	last  int64
}

func newStdio(in io.Reader, out io.Writer) *stdio {
	return &stdio{in: bufio.NewReader(in), out: out, calls: map[jsonrpc.ID]json.RawMessage{}}
}

// maxLine is the largest length of a line. The service accepts no longer body, and its ID may get longer.
const maxLine = op.MaxBody - 64

// Read returns the next message; a call has an ID of the connection's own. The error is io.EOF at the end of the input.
func (s *stdio) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		line, err := s.readLine()
		if err != nil && len(line) == 0 {
			return nil, err
		}
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		m, id, err := parseLine(line)
		if err != nil {
			if err := s.writeLine(id, nil, err); err != nil {
				return nil, err
			}
			continue
		}
		if call, ok := m.(*jsonrpc.Request); ok && id != nil {
			s.mu.Lock()
			s.last++
			call.ID, _ = jsonrpc.MakeID(float64(s.last)) // never fails for a number
			s.calls[call.ID] = id
			s.mu.Unlock()
		}
		return m, ctx.Err()
	}
}

// readLine reads a line. Of one that is longer than maxLine it returns no more than tells so.
func (s *stdio) readLine() ([]byte, error) {
	var line []byte
	for {
		part, err := s.in.ReadSlice('\n')
		if len(line) <= maxLine {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// parseLine parses a line as one message. id is the ID of a request, if it could be read; errors are *jsonrpc.Error.
func parseLine(line []byte) (m jsonrpc.Message, id json.RawMessage, err error) {
	if len(line) > maxLine {
		return nil, nil, &jsonrpc.Error{
			Code: jsonrpc.CodeInvalidRequest, Message: fmt.Sprintf("the message is too long; the limit is %d bytes", maxLine),
		}
	}
	line = bytes.TrimPrefix(line, op.ByteOrderMark) // some programs begin their output with it
	envelope, err := mcp.ParseMessage(line)
	if len(envelope.ID) > 0 {
		id = json.RawMessage(envelope.ID)
	}
	if err != nil {
		return nil, id, err
	}
	if m, err = jsonrpc.DecodeMessage(line); err != nil {
		return nil, id, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: "the message does not follow JSON-RPC 2.0"}
	}
	return m, id, nil
}

// Answer writes the response to a call, with the agent's ID. It does nothing if the call is not pending.
func (s *stdio) Answer(response *jsonrpc.Response) (wasPending bool, err error) {
	s.mu.Lock()
	id, wasPending := s.calls[response.ID]
	delete(s.calls, response.ID)
	s.mu.Unlock()
	if !wasPending {
		return false, nil
	}
	return true, s.writeLine(id, response.Result, response.Error)
}

// writeLine writes a response. id is the agent's; null if it is nil.
func (s *stdio) writeLine(id, result json.RawMessage, failure error) error {
	response := struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Result  json.RawMessage `json:"result,omitempty"`
		Error   *jsonrpc.Error  `json:"error,omitempty"`
	}{Version: "2.0", ID: id, Result: result}
	if failure != nil {
		e, ok := errors.AsType[*jsonrpc.Error](failure)
		if !ok {
			e = &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: failure.Error()}
		}
		response.Error = e
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	encoder := json.NewEncoder(s.out) // ends a message with a newline
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(response); err != nil {
		return fmt.Errorf("write standard output: %w", err)
	}
	return nil
}
