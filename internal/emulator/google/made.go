package google

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"time"
)

// stamp is the time of the world in the form of the services.
func (w *world) stamp() string { return w.now().UTC().Format(time.RFC3339) }

// These complete what a request creates with what the service adds.

func madeTask(w *world, c *call, d doc) {
	if d["status"] == nil {
		d["status"] = "needsAction"
	}
	if parent := c.query.Get("parent"); parent != "" {
		d["parent"] = parent
	}
	d["kind"], d["updated"], d["position"] = "tasks#task", w.stamp(), fmt.Sprintf("%020d", w.next)
}

func madeCalendar(_ *world, _ *call, d doc) {
	if d["timeZone"] == nil {
		d["timeZone"] = "UTC"
	}
	d["kind"], d["accessRole"] = "calendar#calendar", "owner"
}

func madeEvent(w *world, _ *call, d doc) {
	d["kind"], d["status"], d["created"] = "calendar#event", "confirmed", w.stamp()
	d["htmlLink"] = fmt.Sprintf("https://www.google.com/calendar/event?eid=%v", d["id"])
	d["organizer"] = doc{"email": w.email, "self": true}
	for _, a := range list(d["attendees"]) {
		guest, ok := a.(doc)
		if !ok {
			continue
		}
		if guest["responseStatus"] == nil {
			guest["responseStatus"] = "needsAction"
		}
		if guest["email"] == w.email {
			guest["self"] = true
		}
	}
}

func list(v any) []any {
	out, _ := v.([]any)
	return out
}

func madeLabel(_ *world, _ *call, d doc) { d["type"] = "user" }

func madeForwarding(_ *world, _ *call, d doc) { d["verificationStatus"] = "pending" }

func madeFile(w *world, c *call, d doc) {
	d["kind"], d["createdTime"], d["modifiedTime"] = "drive#file", w.stamp(), w.stamp()
	id := fmt.Sprint(d["id"])
	if d["parents"] == nil {
		d["parents"] = []any{"root"}
	}
	if c.upload {
		if d["mimeType"] == nil {
			d["mimeType"] = c.mediaType
		}
		sum := sha256.Sum256(c.media)
		w.files[id] = raw{fmt.Sprint(d["mimeType"]), c.media}
		d["size"], d["sha256Checksum"] = fmt.Sprint(len(c.media)), hex.EncodeToString(sum[:])
	}
	if d["mimeType"] == nil {
		d["mimeType"] = "application/octet-stream"
	}
	d["webViewLink"] = "https://drive.google.com/file/d/" + id + "/view"
	d["trashed"] = false
}

func madePermission(_ *world, _ *call, d doc) {
	d["kind"] = "drive#permission"
	if d["displayName"] == nil {
		d["displayName"] = d["emailAddress"]
	}
}

func madeSpreadsheet(w *world, _ *call, d doc) {
	id := fmt.Sprint(d["spreadsheetId"])
	d["spreadsheetUrl"] = "https://docs.google.com/spreadsheets/d/" + id + "/edit"
	if len(list(d["sheets"])) == 0 {
		d["sheets"] = []any{doc{"properties": doc{"title": "Sheet1"}}}
	}
	w.cells[id] = map[string][][]any{}
	for i, s := range list(d["sheets"]) {
		props, _ := s.(doc)["properties"].(doc)
		props["sheetId"], props["index"], props["sheetType"] = i, i, "GRID"
		props["gridProperties"] = doc{"rowCount": 1000, "columnCount": 26}
		w.cells[id][fmt.Sprint(props["title"])] = nil
	}
}

func madeForm(_ *world, _ *call, d doc) {
	d["responderUri"] = fmt.Sprintf("https://docs.google.com/forms/d/e/%v/viewform", d["formId"])
	d["revisionId"] = "1"
	if info, ok := d["info"].(doc); ok && info["documentTitle"] == nil {
		info["documentTitle"] = info["title"]
	}
}

func madeDocument(w *world, _ *call, d doc) {
	setText(d, "\n")
	d["revisionId"] = w.mint("r")
}

func madePresentation(w *world, _ *call, d doc) {
	id := w.mint("slide")
	d["slides"] = []any{doc{"objectId": id, "pageElements": []any{}}}
}
