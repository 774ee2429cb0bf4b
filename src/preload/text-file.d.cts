/** A file that is not text in UTF-8. Its message begins with `<path>:<line>: `. */
export class TextFault extends Error {
  readonly path: string
  readonly line: number
  /** The message without its place. */
  readonly why: string
}
/** The text of a file without its byte order mark. @throws TextFault */
export function textOf(bytes: Buffer, path: string): string
/** Reads a text that is no code. @throws TextFault, also for a NUL; and what `readFileSync` throws */
export function readText(path: string): string
