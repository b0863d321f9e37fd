// Stands for the messages where scripts are read as they are: `build` puts the texts of the page in their places.

/** A message in the language of the page. @param {string} english @returns {string} */
function gettext(english) {
  return english;
}

/** A message that has another translation elsewhere. @param {string} _context @param {string} english @returns {string} */
function pgettext(_context, english) {
  return english;
}
