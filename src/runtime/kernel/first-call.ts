/**
 * A copy of a tool's object for one plugin, which reports the plugin's first call. Until then each method is a stand-in, and the first
 * call puts all real methods into their places: from then on a call costs the same as without it. A method that was taken out of the
 * object before keeps one check.
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
