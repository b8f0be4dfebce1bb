// What the emulator of Claude checks of Anthropic's own library.
import type Anthropic from "@anthropic-ai/sdk";

export interface Contract {
  request?: Anthropic.MessageCreateParams;
  message?: Anthropic.Message;
  event?: Anthropic.RawMessageStreamEvent;
}
