/** Fills `length` bytes that follow from a number, and checks them on the other side. */
export function fillBody(bytes: Uint8Array, at: number, length: number, number: number): void {
  for (let n = 0; n < length; n++) bytes[at + n] = (number * 31 + n * 7) & 0xff
}

export function isBody(bytes: Uint8Array, at: number, length: number, number: number): boolean {
  for (let n = 0; n < length; n++) if (bytes[at + n] !== ((number * 31 + n * 7) & 0xff)) return false
  return true
}
