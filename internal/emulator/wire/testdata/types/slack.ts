// What the emulator of Slack checks of Slack's own libraries: the fields of answers and events that it
// sends. Blocks and attachments are left out: the emulator checks them by itself.
import type {
  AgentSessionStoppedEvent, AppHomeOpenedEvent, AppMentionEvent, BotMessageEvent, FileShareMessageEvent,
  GenericMessageEvent, MeMessageEvent, MessageChangedEvent, MessageDeletedEvent, ReactionAddedEvent, ReactionRemovedEvent, ThreadBroadcastMessageEvent,
} from "@slack/types";
import type {
  AppsConnectionsOpenResponse, AuthTestResponse, ChatGetPermalinkResponse, ChatPostEphemeralResponse, ChatPostMessageResponse, ChatStartStreamResponse,
  ChatUpdateResponse, ConversationsHistoryResponse, FilesGetUploadURLExternalResponse,
} from "@slack/web-api";
import type { Channel } from "@slack/web-api/dist/types/response/ConversationsInfoResponse";
import type { Channel as Found } from "@slack/web-api/dist/types/response/ConversationsListResponse";
import type { Channel as Opened } from "@slack/web-api/dist/types/response/ConversationsOpenResponse";
import type { FileElement, MessageElement } from "@slack/web-api/dist/types/response/ConversationsRepliesResponse";
import type { MessageElement as Past } from "@slack/web-api/dist/types/response/ConversationsHistoryResponse";
import type { File } from "@slack/web-api/dist/types/response/FilesInfoResponse";
import type { File as Uploaded } from "@slack/web-api/dist/types/response/FilesCompleteUploadExternalResponse";
import type { Reaction } from "@slack/web-api/dist/types/response/ReactionsGetResponse";
import type { Team } from "@slack/web-api/dist/types/response/TeamInfoResponse";
import type { Channel as Listed } from "@slack/web-api/dist/types/response/UsersConversationsResponse";
import type { Member } from "@slack/web-api/dist/types/response/UsersListResponse";
import type { View } from "@slack/web-api/dist/types/response/ViewsOpenResponse";
import type { User } from "@slack/web-api/dist/types/response/UsersInfoResponse";

type Bare = "attachments" | "blocks" | "files" | "message" | "previous_message" | "root" | "view";

export interface Contract {
  event?: Omit<GenericMessageEvent, Bare> | Omit<BotMessageEvent, Bare> | Omit<FileShareMessageEvent, Bare> |
    Omit<MeMessageEvent, Bare> | Omit<MessageChangedEvent, Bare> | Omit<ThreadBroadcastMessageEvent, Bare> | Omit<MessageDeletedEvent, Bare> |
    Omit<AppMentionEvent, Bare> | Omit<AppHomeOpenedEvent, Bare> | ReactionAddedEvent | ReactionRemovedEvent | AgentSessionStoppedEvent;
  results?: {
    "apps.connections.open"?: {
      url?: AppsConnectionsOpenResponse["url"];
    };
    "auth.test"?: {
      bot_id?: AuthTestResponse["bot_id"];
      is_enterprise_install?: AuthTestResponse["is_enterprise_install"];
      team?: AuthTestResponse["team"];
      team_id?: AuthTestResponse["team_id"];
      url?: AuthTestResponse["url"];
      user?: AuthTestResponse["user"];
      user_id?: AuthTestResponse["user_id"];
    };
    "chat.getPermalink"?: {
      channel?: ChatGetPermalinkResponse["channel"];
      permalink?: ChatGetPermalinkResponse["permalink"];
    };
    "chat.postEphemeral"?: {
      message_ts?: ChatPostEphemeralResponse["message_ts"];
    };
    "chat.postMessage"?: {
      channel?: ChatPostMessageResponse["channel"];
      ts?: ChatPostMessageResponse["ts"];
    };
    "chat.startStream"?: {
      channel?: ChatStartStreamResponse["channel"];
      ts?: ChatStartStreamResponse["ts"];
    };
    "chat.update"?: {
      channel?: ChatUpdateResponse["channel"];
      text?: ChatUpdateResponse["text"];
      ts?: ChatUpdateResponse["ts"];
    };
    "conversations.history"?: { messages: {
      app_id?: Past["app_id"];
      bot_id?: Past["bot_id"];
      client_msg_id?: Past["client_msg_id"];
      latest_reply?: Past["latest_reply"];
      parent_user_id?: Past["parent_user_id"];
      reply_count?: Past["reply_count"];
      reply_users?: Past["reply_users"];
      subtype?: Past["subtype"];
      team?: Past["team"];
      text?: Past["text"];
      thread_ts?: Past["thread_ts"];
      ts?: Past["ts"];
      type?: Past["type"];
      user?: Past["user"];
      username?: Past["username"];
    }[] };
    "conversations.info"?: { channel: {
      context_team_id?: Channel["context_team_id"];
      id?: Channel["id"];
      is_archived?: Channel["is_archived"];
      is_channel?: Channel["is_channel"];
      is_ext_shared?: Channel["is_ext_shared"];
      is_group?: Channel["is_group"];
      is_im?: Channel["is_im"];
      is_member?: Channel["is_member"];
      is_mpim?: Channel["is_mpim"];
      is_private?: Channel["is_private"];
      name?: Channel["name"];
      num_members?: Channel["num_members"];
    } };
    "conversations.list"?: { channels: {
      id?: Found["id"];
      is_archived?: Found["is_archived"];
      is_channel?: Found["is_channel"];
      is_im?: Found["is_im"];
      is_member?: Found["is_member"];
      is_private?: Found["is_private"];
      name?: Found["name"];
      num_members?: Found["num_members"];
    }[] };
    "conversations.open"?: { channel: {
      id?: Opened["id"];
    } };
    "conversations.replies"?: { messages: {
      app_id?: MessageElement["app_id"];
      bot_id?: MessageElement["bot_id"];
      latest_reply?: MessageElement["latest_reply"];
      parent_user_id?: MessageElement["parent_user_id"];
      reply_count?: MessageElement["reply_count"];
      reply_users?: MessageElement["reply_users"];
      team?: MessageElement["team"];
      text?: MessageElement["text"];
      thread_ts?: MessageElement["thread_ts"];
      ts?: MessageElement["ts"];
      type?: MessageElement["type"];
      user?: MessageElement["user"];
      files?: {
        created?: FileElement["created"];
        file_access?: FileElement["file_access"];
        filetype?: FileElement["filetype"];
        id?: FileElement["id"];
        is_external?: FileElement["is_external"];
        mimetype?: FileElement["mimetype"];
        mode?: FileElement["mode"];
        name?: FileElement["name"];
        size?: FileElement["size"];
        title?: FileElement["title"];
        url_private?: FileElement["url_private"];
        url_private_download?: FileElement["url_private_download"];
        user?: FileElement["user"];
      }[];
    }[] };
    "files.completeUploadExternal"?: { files: {
      id?: Uploaded["id"];
      title?: Uploaded["title"];
    }[] };
    "files.getUploadURLExternal"?: {
      file_id?: FilesGetUploadURLExternalResponse["file_id"];
      upload_url?: FilesGetUploadURLExternalResponse["upload_url"];
    };
    "files.info"?: { file: {
      created?: File["created"];
      file_access?: File["file_access"];
      filetype?: File["filetype"];
      id?: File["id"];
      is_external?: File["is_external"];
      mimetype?: File["mimetype"];
      mode?: File["mode"];
      name?: File["name"];
      size?: File["size"];
      title?: File["title"];
      url_private?: File["url_private"];
      url_private_download?: File["url_private_download"];
      user?: File["user"];
    } };
    "reactions.get"?: { message: {
      reactions?: {
        count?: Reaction["count"];
        name?: Reaction["name"];
        users?: Reaction["users"];
      }[];
    } };
    "team.info"?: { team: {
      domain?: Team["domain"];
      id?: Team["id"];
      name?: Team["name"];
    } };
    "users.conversations"?: { channels: {
      id?: Listed["id"];
      is_archived?: Listed["is_archived"];
      is_im?: Listed["is_im"];
      is_mpim?: Listed["is_mpim"];
      is_private?: Listed["is_private"];
      name?: Listed["name"];
    }[] };
    "users.list"?: { members: {
      deleted?: Member["deleted"];
      id?: Member["id"];
      is_bot?: Member["is_bot"];
      name?: Member["name"];
      team_id?: Member["team_id"];
    }[] };
    "views.open"?: { view: {
      id?: View["id"];
      type?: View["type"];
    } };
    "users.info"?: { user: {
      deleted?: User["deleted"];
      id?: User["id"];
      is_admin?: User["is_admin"];
      is_bot?: User["is_bot"];
      is_owner?: User["is_owner"];
      is_primary_owner?: User["is_primary_owner"];
      name?: User["name"];
      real_name?: User["real_name"];
      team_id?: User["team_id"];
    } };
  };
}
