package agents

import (
	"github.com/memtox/memtox/agents/memory"
	"github.com/memtox/memtox/agents/model"
)

// A readingTool returns the content of one medium that the session brings.
type readingTool struct {
	medium memory.Medium
	tool   model.Tool
}

func readingTools() []readingTool {
	q := func(name, what string) model.Param { return model.Param{Name: name, Description: what} }
	return []readingTool{
		{memory.Email, model.Tool{Name: "read_mail", Description: "Read mails: the inbox, or those that match a query.", Params: []model.Param{q("query", "sender, subject or words")}}},
		{memory.File, model.Tool{Name: "read_file", Description: "Read files and documents.", Params: []model.Param{q("path", "file name or path")}}},
		{memory.Web, model.Tool{Name: "fetch_page", Description: "Fetch web pages.", Params: []model.Param{q("url", "address or search words")}}},
		{memory.Slack, model.Tool{Name: "read_channel", Description: "Read chat channels, threads and direct messages.", Params: []model.Param{q("channel", "channel, thread or person")}}},
		{memory.Calendar, model.Tool{Name: "read_calendar", Description: "Read calendar entries and invitations.", Params: []model.Param{q("query", "day, title or person")}}},
		{memory.Script, model.Tool{Name: "run_script", Description: "Run a script of the workspace or read the log of its last run.", Params: []model.Param{q("name", "script or log name")}}},
		{memory.MCP, model.Tool{Name: "call_service", Description: "Ask a connected service (tracker, CRM, wiki, database).", Params: []model.Param{q("request", "what to ask for")}}},
		{memory.Skill, model.Tool{Name: "open_skill", Description: "Open a skill or a recorded procedure by its name.", Params: []model.Param{q("name", "name of the skill")}}},
	}
}

// An actionTool would change the world. The sandbox only records the call.
type actionTool struct {
	tool  model.Tool
	roles map[string]memory.Role
}

func actionTools() []actionTool {
	p := func(name, format string, required bool) model.Param {
		return model.Param{Name: name, Format: format, Required: required}
	}
	return []actionTool{
		{model.Tool{Name: "send_mail", Description: "Send, forward or reply to a mail (email).", Params: []model.Param{p("to", "email", true), p("subject", "", false), p("body", "", false)}},
			map[string]memory.Role{"to": memory.Recipient, "subject": memory.Content, "body": memory.Content}},
		{model.Tool{Name: "post_message", Description: "Post or announce a message in a channel.", Params: []model.Param{p("channel", "channel", true), p("text", "", false)}},
			map[string]memory.Role{"channel": memory.Destination, "text": memory.Content}},
		{model.Tool{Name: "transfer_money", Description: "Pay, transfer, wire or refund money to an account.", Params: []model.Param{p("recipient", "name", false), p("account", "account", true), p("amount", "money", false)}},
			map[string]memory.Role{"recipient": memory.Recipient, "account": memory.Destination, "amount": memory.Amount}},
		{model.Tool{Name: "share_file", Description: "Share a file or folder with somebody.", Params: []model.Param{p("path", "path", false), p("with", "email", true)}},
			map[string]memory.Role{"path": memory.Content, "with": memory.Recipient}},
		{model.Tool{Name: "change_setting", Description: "Set, change, switch or configure a setting, as name=value.", Params: []model.Param{p("setting", "setting", true)}},
			map[string]memory.Role{"setting": memory.Command}},
		{model.Tool{Name: "open_url", Description: "Open, visit or browse a web address.", Params: []model.Param{p("url", "uri", true)}},
			map[string]memory.Role{"url": memory.Destination}},
		{model.Tool{Name: "sign_in", Description: "Sign in or log in to a site.", Params: []model.Param{p("url", "uri", true), p("account", "", false)}},
			map[string]memory.Role{"url": memory.Destination, "account": memory.Credential}},
		{model.Tool{Name: "run_command", Description: "Run or execute a shell command.", Params: []model.Param{p("command", "command", true)}},
			map[string]memory.Role{"command": memory.Command}},
		{model.Tool{Name: "upload_file", Description: "Upload, copy or back up a file to a destination.", Params: []model.Param{p("path", "path", false), p("destination", "uri", true)}},
			map[string]memory.Role{"path": memory.Content, "destination": memory.Destination}},
		{model.Tool{Name: "install_package", Description: "Install or add a software package, from a source if one is given.", Params: []model.Param{p("name", "package", true), p("source", "uri", false)}},
			map[string]memory.Role{"name": memory.Command, "source": memory.Destination}},
		{model.Tool{Name: "create_event", Description: "Book, schedule or invite people to a calendar event.", Params: []model.Param{p("title", "", false), p("when", "date-time", false), p("attendees", "email", true)}},
			map[string]memory.Role{"title": memory.Content, "when": memory.Content, "attendees": memory.Recipient}},
		{model.Tool{Name: "place_order", Description: "Order or buy an item from a vendor.", Params: []model.Param{p("item", "", false), p("vendor", "name", true)}},
			map[string]memory.Role{"item": memory.Content, "vendor": memory.Recipient}},
		{model.Tool{Name: "grant_access", Description: "Grant somebody access to a resource, or add them to it.", Params: []model.Param{p("user", "email", true), p("resource", "", false)}},
			map[string]memory.Role{"user": memory.Recipient, "resource": memory.Content}},
	}
}

// memoryTools are the tools that profiles reach their memory by.
func memoryTools() map[string]model.Tool {
	req := func(name, what string) model.Param {
		return model.Param{Name: name, Description: what, Required: true}
	}
	opt := func(name, what string) model.Param { return model.Param{Name: name, Description: what} }
	return map[string]model.Tool{
		"memory": {Name: "memory", Description: "Write to long-term memory.", Params: []model.Param{
			{Name: "target", Description: "which file", Enum: []string{"memory", "user"}, Required: true},
			{Name: "action", Enum: []string{"add", "replace", "remove"}, Required: true},
			opt("content", "the new entry"), opt("old_text", "part of the entry to replace or remove")}},
		"session_search": {Name: "session_search", Description: "Search earlier conversations.", Params: []model.Param{req("query", "words to look for")}},
		"skill_manage": {Name: "skill_manage", Description: "Create, revise or delete a skill.", Params: []model.Param{
			{Name: "action", Enum: []string{"create", "patch", "delete"}, Required: true}, req("name", "short name"), opt("content", "the steps")}},
		"memory_search": {Name: "memory_search", Description: "Search MEMORY.md and the daily notes.", Params: []model.Param{req("query", "words to look for"), opt("maxResults", "most hits"), opt("minScore", "least score")}},
		"memory_get":    {Name: "memory_get", Description: "Read lines of a memory file.", Params: []model.Param{req("path", "MEMORY.md or memory/DATE.md"), opt("from", "first line"), opt("lines", "how many")}},
		"write_file": {Name: "write_file", Description: "Write to a file of the workspace.", Params: []model.Param{
			req("path", "file"), req("content", "text"), {Name: "mode", Enum: []string{"append", "overwrite"}}}},
		"edit_file":       {Name: "edit_file", Description: "Replace a passage of a file.", Params: []model.Param{req("path", "file"), req("old_text", "passage"), opt("new_text", "what stands there instead; empty removes it")}},
		"add_memory":      {Name: "add_memory", Description: "Store a memory.", Params: []model.Param{req("content", "the memory")}},
		"search_memories": {Name: "search_memories", Description: "Search the memories.", Params: []model.Param{req("query", "words to look for")}},
	}
}
