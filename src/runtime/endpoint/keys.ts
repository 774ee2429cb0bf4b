/** Keys that could reach a prototype: refused with 400 wherever a client sends them. */
export function isForbiddenKey(key: string): boolean {
  return key === '__proto__' || key === 'constructor' || key === 'prototype'
}

/** Keys that only the runtime sets: dropped when a client sends them. */
export function isReservedKey(key: string): boolean {
  return key.startsWith('_auth') || key.startsWith('_files')
}
