import { buffer } from 'node:stream/consumers'
import PDFDocument from 'pdfkit'

export default () => async () => {
  const document = new PDFDocument()
  document.fontSize(25).text('A loom')
  document.end()
  return (await buffer(document)).length
}
