// What the emulator of models checks of OpenAI's own library.
import type OpenAI from "openai";

export interface Contract {
  chat?: OpenAI.Chat.ChatCompletionCreateParams;
  completion?: OpenAI.Chat.ChatCompletion;
  chunk?: OpenAI.Chat.ChatCompletionChunk;
  responses?: OpenAI.Responses.ResponseCreateParams;
  response?: OpenAI.Responses.Response;
  event?: OpenAI.Responses.ResponseStreamEvent;
  embeddings?: OpenAI.EmbeddingCreateParams;
  vectors?: OpenAI.CreateEmbeddingResponse;
  transcribe?: Omit<OpenAI.Audio.TranscriptionCreateParamsNonStreaming, "file">;
  transcription?: OpenAI.Audio.Transcription;
  image?: OpenAI.Images.ImageGenerateParamsNonStreaming;
  edit?: Omit<OpenAI.Images.ImageEditParamsNonStreaming, "image" | "mask" | "n"> & { n?: string };
  images?: OpenAI.Images.ImagesResponse;
  speech?: OpenAI.Audio.SpeechCreateParams;
  models?: { object: string; data: OpenAI.Model[] };
}
