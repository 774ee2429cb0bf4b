/** A number, and text behind it: SOCKET_ACCEPT (the socket, its subprotocol), SOCKET_CLOSE and SOCKET_CLOSED (code, reason). */
export const numberedText = (number: number, text: string): string => `${number} ${text}`

/** The reading side of `numberedText`. */
export function readNumbered(text: string): [number: number, text: string] {
  const blank = text.indexOf(' ')
  return [Number(text.slice(0, blank)), text.slice(blank + 1)]
}
