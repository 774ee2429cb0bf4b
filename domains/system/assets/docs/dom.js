/**
 * Makes an element. Texts are set as text: nothing from a document or a response is parsed as markup.
 * @param {string} tag name, and classes behind dots: `p.note`
 * @param {Record<string, unknown>} [attributes] functions become listeners; false and undefined are left out
 * @param {...(Node | string | null | undefined | false)} children
 */
export function el(tag, attributes = {}, ...children) {
  const [name, ...classes] = tag.split('.')
  const element = document.createElement(name)
  element.classList.add(...classes)
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === false || value === null) continue
    if (typeof value === 'function') element.addEventListener(key, value)
    else element.setAttribute(key, value === true ? '' : String(value))
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== false))
  return element
}

/** A button that copies a text; null when the browser gives no access to the clipboard. */
export function copyButton(readText, label = 'Copy') {
  if (!navigator.clipboard) return null
  const button = el('button.quiet', { type: 'button' }, label)
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(readText())
      button.textContent = 'Copied'
    } catch {
      button.textContent = 'Not allowed'
    }
    setTimeout(() => {
      button.textContent = label
    }, 1500)
  })
  return button
}

/** Renders a text in which backticks mark code. */
export function prose(text) {
  return text.split('`').map((part, index) => (index % 2 === 1 ? el('code', {}, part) : part))
}
