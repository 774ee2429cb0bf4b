const form = document.getElementById('login')
const token = /** @type {HTMLInputElement} */ (document.getElementById('token'))
const fault = document.getElementById('fault')

/** The page that wanted the token: only one of this service. */
function next() {
  const wanted = new URL(new URLSearchParams(location.search).get('next') ?? '', location.origin)
  const isOurs = wanted.origin === location.origin && wanted.pathname.startsWith('/system/')
  return isOurs ? wanted.pathname + wanted.search : '/system/dashboard'
}

/** @returns why the token was refused, or null */
async function refusalOf(value) {
  try {
    // In a header, so that it stands in no form, address or log. The answer keeps it in a cookie that scripts cannot read.
    const response = await fetch('/system/login', { method: 'POST', headers: { authorization: `Bearer ${value}` } })
    if (response.ok) return null
    return response.status === 401 ? 'This is not the token.' : `Refused: ${(await response.json()).error}`
  } catch {
    return 'The service did not answer, or the token has characters that no token has.'
  }
}

token.focus()
form.addEventListener('submit', async (event) => {
  event.preventDefault()
  const refusal = await refusalOf(token.value.trim())
  if (refusal === null) return location.replace(next())
  fault.textContent = refusal
  token.select()
})
