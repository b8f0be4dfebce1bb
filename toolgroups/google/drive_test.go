package google

import (
	"net/url"
	"testing"

	"oneclaw/toolgroups/google/service"
)

// What is asked for of a file and of a permission.
const (
	driveFields           = "id,name,mimeType,size,modifiedTime,parents,webViewLink,webContentLink,shortcutDetails(targetId,targetMimeType)"
	drivePermissionFields = "id,type,role,emailAddress,displayName,domain"
)

// wantRequest is what arrives at the server: parameters come in pairs, those of every
// request are added.
func wantRequest(method, path, body string, params ...string) string {
	values := url.Values{"alt": {"json"}, "prettyPrint": {"false"}}
	for i := 0; i+1 < len(params); i += 2 {
		values.Add(params[i], params[i+1])
	}
	line := method + " " + path + "?" + values.Encode()
	if body != "" {
		line += " " + body + "\n"
	}
	return line
}

const (
	driveListFields = "files(id,name,mimeType,size,modifiedTime,parents,webViewLink,webContentLink,shortcutDetails(targetId,targetMimeType)),nextPageToken"
	driveOne        = `{"id":"f1","name":"a.txt","mimeType":"text/plain","size":"3","modifiedTime":"2026-01-02T03:04:05Z","parents":["p1"],"webViewLink":"https://v","webContentLink":"https://c"}`
	driveTwo        = `{"id":"f2","name":"b"}`
)

// driveList is the request of a list.
func driveListRequest(q, size, token string) string {
	params := []string{"q", q, "pageSize", size, "fields", driveListFields, "supportsAllDrives", "true", "includeItemsFromAllDrives", "true"}
	if token != "" {
		params = append(params, "pageToken", token)
	}
	return wantRequest("GET", "/drive/v3/files", "", params...)
}

func TestDriveLists(t *testing.T) {
	const list = "GET /drive/v3/files"
	runSteps(t, []step{
		{
			name: "everything, by default twenty", tool: "drive_list_files", args: `{}`,
			replies:  map[string][]string{list: {`{"files":[` + driveOne + `],"nextPageToken":"n1"}`, `{}`}},
			requests: []string{driveListRequest("trashed=false", "20", ""), driveListRequest("trashed=false", "19", "n1")},
			result:   `{"files":[` + driveOne + `]}`,
		},
		{
			name: "an or in the clause stays in the folder", tool: "drive_list_files",
			args:     `{"parent_id":"it's\\me","query":"name='a' or name='b'","max_results":1,"page_token":"n1"}`,
			replies:  map[string][]string{list: {`{"files":[` + driveTwo + `],"nextPageToken":"n2"}`}},
			requests: []string{driveListRequest(`trashed=false and 'it\'s\\me' in parents and (name='a' or name='b')`, "1", "n1")},
			result:   `{"files":[` + driveTwo + `],"nextPageToken":"n2"}`,
		},
		{
			name: "no more than Google gives at once", tool: "drive_list_files", args: `{"max_results":5000}`,
			replies:  map[string][]string{list: {`{}`}},
			requests: []string{driveListRequest("trashed=false", "1000", "")},
			result:   `{"files":[]}`,
		},
		{
			name: "bad clause", tool: "drive_list_files", args: `{"query":"("}`,
			replies: map[string][]string{list: {`400{"error":{"code":400,"message":"Invalid Value"}}`}},
			code:    "validation_error",
		},
		{
			name: "name and content, quoted", tool: "drive_search", args: `{"query":"O'Neil \\ 1"}`,
			replies: map[string][]string{list: {`{"files":[` + driveOne + `]}`}},
			requests: []string{driveListRequest(
				`(name contains 'O\'Neil \\ 1' or fullText contains 'O\'Neil \\ 1') and trashed=false`, "20", "")},
			result: `{"files":[` + driveOne + `]}`,
		},
		{name: "search for nothing", tool: "drive_search", args: `{"query":" "}`, code: "validation_error"},
		{
			name: "shared, cut by the maximum", tool: "drive_list_shared", args: `{"max_results":1}`,
			replies:  map[string][]string{list: {`{"files":[` + driveOne + `],"nextPageToken":"n1"}`}},
			requests: []string{driveListRequest("sharedWithMe and trashed=false", "1", "")},
			result:   `{"files":[` + driveOne + `],"more":true}`,
		},
	})
}

func TestDriveFacts(t *testing.T) {
	const shared = "supportsAllDrives"
	runSteps(t, []step{
		{
			name: "metadata", tool: "drive_get_file", args: `{"file_id":"f1"}`,
			replies:  map[string][]string{"GET /drive/v3/files/f1": {driveOne}},
			requests: []string{wantRequest("GET", "/drive/v3/files/f1", "", "fields", driveFields, shared, "true")},
			result:   driveOne,
		},
		{
			name: "an id is no path", tool: "drive_get_file", args: `{"file_id":"../about"}`,
			requests: []string{wantRequest("GET", "/drive/v3/files/..%2Fabout", "", "fields", driveFields, shared, "true")},
			code:     service.CodeNotFound,
		},
		{name: "no id", tool: "drive_get_file", args: `{"file_id":""}`, code: "validation_error"},
		{
			name: "quota with an empty trash", tool: "drive_get_storage_quota", args: `{}`,
			replies:  map[string][]string{"GET /drive/v3/about": {`{"storageQuota":{"limit":"16106127360","usage":"5","usageInDrive":"4"}}`}},
			requests: []string{wantRequest("GET", "/drive/v3/about", "", "fields", "storageQuota")},
			result:   `{"limit":"16106127360","usage":"5","usageInDrive":"4","usageInDriveTrash":"0"}`,
		},
		{
			name: "quota without a limit", tool: "drive_get_storage_quota", args: `{}`,
			replies: map[string][]string{"GET /drive/v3/about": {`{"storageQuota":{"usage":"5"}}`}},
			result:  `{"usage":"5","usageInDrive":"0","usageInDriveTrash":"0"}`,
		},
		{
			name: "permissions over two pages", tool: "drive_permissions", args: `{"file_id":"f1"}`,
			replies: map[string][]string{"GET /drive/v3/files/f1/permissions": {
				`{"permissions":[{"id":"1","type":"user","role":"owner","emailAddress":"a@x"}],"nextPageToken":"n"}`,
				`{"permissions":[{"id":"2","type":"domain","role":"reader","domain":"x"}]}`,
			}},
			requests: []string{
				wantRequest("GET", "/drive/v3/files/f1/permissions", "", "fields", "permissions("+drivePermissionFields+"),nextPageToken", "pageSize", "100", shared, "true"),
				wantRequest("GET", "/drive/v3/files/f1/permissions", "", "fields", "permissions("+drivePermissionFields+"),nextPageToken", "pageSize", "100", shared, "true", "pageToken", "n"),
			},
			result: `{"permissions":[{"id":"1","type":"user","role":"owner","emailAddress":"a@x"},{"id":"2","type":"domain","role":"reader","domain":"x"}]}`,
		},
	})
}

func TestDriveChanges(t *testing.T) {
	const shared, one = "supportsAllDrives", "/drive/v3/files/f1"
	patched := map[string][]string{"PATCH " + one: {driveOne}}
	runSteps(t, []step{
		{
			name: "folder in a folder", tool: "drive_create_folder", args: `{"name":"New","parent_id":"p1"}`,
			replies: map[string][]string{"POST /drive/v3/files": {driveTwo}},
			requests: []string{wantRequest("POST", "/drive/v3/files",
				`{"mimeType":"application/vnd.google-apps.folder","name":"New","parents":["p1"]}`, "fields", driveFields, shared, "true")},
			result: driveTwo,
		},
		{name: "folder without a name", tool: "drive_create_folder", args: `{"name":" "}`, code: "validation_error"},
		{
			name: "to the trash, not away", tool: "drive_delete_file", args: `{"file_id":"f1"}`,
			replies:  map[string][]string{"PATCH " + one: {`{"id":"f1","name":"a.txt","trashed":true}`}},
			requests: []string{wantRequest("PATCH", one, `{"trashed":true}`, "fields", "id,name,trashed", shared, "true")},
			result:   `{"id":"f1","name":"a.txt","trashed":true}`,
		},
		{
			name: "rename", tool: "drive_rename_file", args: `{"file_id":"f1","new_name":"b.txt"}`,
			replies: patched, requests: []string{wantRequest("PATCH", one, `{"name":"b.txt"}`, "fields", driveFields, shared, "true")},
			result: driveOne,
		},
		{
			name: "rename, sent again after a while", tool: "drive_rename_file", args: `{"file_id":"f1","new_name":"b.txt"}`,
			replies: map[string][]string{"PATCH " + one: {`429{}`, driveOne}},
			requests: []string{
				wantRequest("PATCH", one, `{"name":"b.txt"}`, "fields", driveFields, shared, "true"),
				wantRequest("PATCH", one, `{"name":"b.txt"}`, "fields", driveFields, shared, "true"),
			},
			result: driveOne,
		},
		{name: "rename to nothing", tool: "drive_rename_file", args: `{"file_id":"f1","new_name":""}`, code: "validation_error"},
		{
			name: "copy with the name of the original", tool: "drive_copy", args: `{"file_id":"f1"}`,
			replies:  map[string][]string{"POST " + one + "/copy": {driveTwo}},
			requests: []string{wantRequest("POST", one+"/copy", `{}`, "fields", driveFields, shared, "true")},
			result:   driveTwo,
		},
		{
			name: "copy elsewhere", tool: "drive_copy", args: `{"file_id":"f1","name":"c","parent_id":"p2"}`,
			replies:  map[string][]string{"POST " + one + "/copy": {driveTwo}},
			requests: []string{wantRequest("POST", one+"/copy", `{"name":"c","parents":["p2"]}`, "fields", driveFields, shared, "true")},
			result:   driveTwo,
		},
	})
}

func TestDriveMove(t *testing.T) {
	const shared, one = "supportsAllDrives", "/drive/v3/files/f1"
	get := wantRequest("GET", one, "", "fields", driveFields, shared, "true")
	runSteps(t, []step{
		{
			name: "out of its folders", tool: "drive_move_file", args: `{"file_id":"f1","new_parent_id":"p3"}`,
			replies: map[string][]string{"GET " + one: {`{"id":"f1","parents":["p1","p2"]}`}, "PATCH " + one: {`{"id":"f1","parents":["p3"]}`}},
			requests: []string{get, wantRequest("PATCH", one, `{}`, "addParents", "p3", "removeParents", "p1,p2",
				"fields", driveFields, shared, "true")},
			result: `{"id":"f1","parents":["p3"]}`,
		},
		{
			name: "not out of where it goes", tool: "drive_move_file", args: `{"file_id":"f1","new_parent_id":"root"}`,
			replies:  map[string][]string{"GET /drive/v3/files/root": {`{"id":"top"}`}, "GET " + one: {`{"id":"f1","parents":["top"]}`}},
			requests: []string{wantRequest("GET", "/drive/v3/files/root", "", "fields", "id"), get},
			result:   `{"id":"f1","parents":["top"]}`,
		},
		{
			name: "not out of the target", tool: "drive_move_file", args: `{"file_id":"f1","new_parent_id":"p2"}`,
			replies:  map[string][]string{"GET " + one: {`{"id":"f1","parents":["p1","p2"]}`}, "PATCH " + one: {`{"id":"f1","parents":["p2"]}`}},
			requests: []string{get, wantRequest("PATCH", one, `{}`, "addParents", "p2", "removeParents", "p1", "fields", driveFields, shared, "true")},
			result:   `{"id":"f1","parents":["p2"]}`,
		},
		{
			name: "from where the user cannot see", tool: "drive_move_file", args: `{"file_id":"f1","new_parent_id":"p3"}`,
			replies:  map[string][]string{"GET " + one: {`{"id":"f1"}`}, "PATCH " + one: {`{"id":"f1"}`}},
			requests: []string{get, wantRequest("PATCH", one, `{}`, "addParents", "p3", "fields", driveFields, shared, "true")},
			result:   `{"id":"f1"}`,
		},
	})
}

func TestDriveShare(t *testing.T) {
	const path, fields = "/drive/v3/files/f1/permissions", "id,type,role,emailAddress"
	const grant = `{"id":"9","type":"user","role":"reader"}`
	granted := map[string][]string{"POST " + path: {grant}}
	body := `{"emailAddress":"a@x.org","role":"reader","type":"user"}`
	runSteps(t, []step{
		{
			name: "with a mail", tool: "drive_share_file", args: `{"file_id":"f1","email":" a@x.org","role":"reader"}`, replies: granted,
			requests: []string{wantRequest("POST", path, body, "sendNotificationEmail", "true", "supportsAllDrives", "true", "fields", fields)},
			result:   grant,
		},
		{
			name: "in silence", tool: "drive_share_file", replies: granted,
			args:     `{"file_id":"f1","email":"a@x.org","role":"reader","send_notification":false}`,
			requests: []string{wantRequest("POST", path, body, "sendNotificationEmail", "false", "supportsAllDrives", "true", "fields", fields)},
			result:   grant,
		},
		{name: "nobody", tool: "drive_share_file", args: `{"file_id":"f1","email":"x","role":"reader"}`, code: "validation_error"},
		{name: "ownership is not given away", tool: "drive_share_file", args: `{"file_id":"f1","email":"a@x.org","role":"owner"}`, code: "validation_error"},
	})
}
