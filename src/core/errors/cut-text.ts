/** A text that is not longer than `maxLength`, but for the note that says how long it was. */
export function cutText(text: string, maxLength: number): string {
  if (text.length <= maxLength) return text
  return `${text.slice(0, maxLength)}… [cut: it had ${text.length} characters]`
}
