/** Compares entry ids, `<milliseconds>-<number>`: negative when `a` is the older one. */
export function compareEntryIds(a: string, b: string): number {
  const [aMs, aNumber] = parts(a)
  const [bMs, bNumber] = parts(b)
  return aMs - bMs || aNumber - bNumber
}

function parts(id: string): [ms: number, number: number] {
  const dash = id.indexOf('-')
  return [Number(id.slice(0, dash)), Number(id.slice(dash + 1))]
}
