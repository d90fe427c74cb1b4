import xml.etree.ElementTree as ET
root = ET.fromstring("<shop><item id='1'><price>2.5</price></item><item id='2'><price>4</price></item></shop>")
total = sum(float(p.text) for p in root.iter("price"))
for item in root.findall("item[@id='2']"):
    item.set("checked", "yes")
print(total, ET.tostring(root, encoding="unicode"))
ET.indent(root); ET.ElementTree(root).write("shop.xml", encoding="utf-8", xml_declaration=True)
