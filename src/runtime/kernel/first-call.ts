/**
 * The same object for one plugin, which tells when the plugin first calls it. Each method stands in for the real one until then, and the
 * first call of any puts all real ones in their places: from then on a call is the same as without it. A method that was taken out of the
 * object before keeps one check in front.
 */
export function tellingFirstCall<T extends object>(tool: T, onFirstCall: () => void): T {
  const given: Record<string, unknown> = {}
  const real: Record<string, unknown> = {}
  let isCalled = false
  const called = () => {
    isCalled = true
    Object.assign(given, real)
    onFirstCall()
  }
  for (const [name, member] of Object.entries(Object.getOwnPropertyDescriptors(tool))) {
    const method: unknown = member.value
    if (typeof method !== 'function') Object.defineProperty(given, name, member)
    else {
      real[name] = method
      given[name] = (...args: unknown[]) => {
        if (!isCalled) called()
        return method(...args)
      }
    }
  }
  return given as T
}
