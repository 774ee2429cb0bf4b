/** Goes to the login page when the service wants a token: after a start with one, or when the cookie has run out. */
export function logIn() {
  location.replace(`/system/login?next=${encodeURIComponent(location.pathname)}`)
}

/** A stream that fails does not say why: another request does. */
export async function logInIfAsked() {
  try {
    const { status } = await fetch('/system/dashboard', { method: 'HEAD' })
    if (status === 401) logIn()
  } catch {
    // The process does not answer: the page tries again.
  }
}
