/** What a page asks the process. It imports nothing. */

/** Goes to the login page when the service wants a token: after a start with one, or when the cookie has run out. */
export function logIn() {
  location.replace(`/system/login?next=${encodeURIComponent(location.pathname)}`)
}

/** @returns the parsed response, or null when the endpoint or the process does not exist */
export async function fetchJson(path, init = {}) {
  try {
    const response = await fetch(path, init)
    if (response.status === 401) logIn()
    return response.ok ? await response.json() : null
  } catch {
    // The state of the connection shows it already.
    return null
  }
}

/** The fields of a form: a list has one for each of its items, and what is no text is JSON. @returns {[name: string, value: string][]} */
export function formFields(value = {}) {
  return Object.entries(value).flatMap(([name, item]) =>
    [item].flat().map((each) => [name, typeof each === 'object' ? JSON.stringify(each) : String(each)]),
  )
}

/** The query of a path, with its question mark; empty for none. */
export function queryText(query) {
  const text = String(new URLSearchParams(formFields(query)))
  return text === '' ? '' : `?${text}`
}
