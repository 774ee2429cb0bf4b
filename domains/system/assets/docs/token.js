const KEY = 'heddle-docs-token'

/** The token that operations are sent with that ask for one. It lives as long as the tab. */
export class Token {
  #input
  #clear

  constructor(form, input, clear) {
    this.#input = input
    this.#clear = clear
    input.value = sessionStorage.getItem(KEY) ?? ''
    input.addEventListener('input', () => this.#keep())
    clear.addEventListener('click', () => {
      this.use('')
      input.focus()
    })
    form.addEventListener('submit', (event) => event.preventDefault())
    this.#keep()
  }

  get value() {
    return this.#input.value.trim()
  }

  use(value) {
    this.#input.value = value
    this.#keep()
    if (value !== '') this.#flash()
  }

  /** Shows where a token belongs; the request goes out all the same, and its 401 can be looked at. */
  hint() {
    this.#flash()
  }

  #flash() {
    this.#input.classList.remove('flash')
    requestAnimationFrame(() => this.#input.classList.add('flash'))
  }

  #keep() {
    if (this.value === '') sessionStorage.removeItem(KEY)
    else sessionStorage.setItem(KEY, this.value)
    this.#clear.hidden = this.value === ''
  }
}
