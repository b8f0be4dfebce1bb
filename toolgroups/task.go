package toolgroups

import "time"

// WaitForTasks is the name of the tool that waits for background tasks. Its turn is suspended until they
// have ended, or until a message comes.
const WaitForTasks = "wait_background_tasks"

// BackgroundTask is work that the model does in a conversation of its own while the chat goes on.
type BackgroundTask struct {
	// ID identifies the task in its chat.
	ID string
	// Title is one line for users, Text the complete instructions.
	Title, Text string
	// Groups are the tool groups with which it begins. Model is empty for the usual one.
	Groups []string
	Model  string
	// User asked for the task, as platform:id. It runs on that user's behalf.
	User  string
	Began time.Time
	// State describes in words what the task does, or how it ended. Open is true until it has ended.
	State string
	Open  bool
}
