/**
 * Characters that a terminal obeys instead of showing them, and those that turn the direction of a text or break its line: controls but tab and line
 * feed, and the marks of Unicode.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const UNPRINTABLE = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g

/** A text, or a line of JSON, with `\u001b` for what should not be obeyed: part of it may come from a client. In JSON it is the same value. */
export const printable = (text: string): string =>
  text.replace(UNPRINTABLE, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`)
