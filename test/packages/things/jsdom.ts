import { JSDOM } from 'jsdom'

export default () => () => {
  const { window } = new JSDOM('<h1>Loom</h1><script>document.title = "run"</script>', { runScripts: 'dangerously' })
  const { title } = window.document
  window.close()
  return title
}
